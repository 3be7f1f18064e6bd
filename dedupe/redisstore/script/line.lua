-- The waiting line of a record, for the scripts that pass a key on. It is one string of places, the
-- first first, each of 33 bytes: the token (16 bytes) of a claim, "p" or "s" for how its process
-- listens, by PUBLISH or in a cluster by SPUBLISH, and the name (16 bytes) of the process.

local place_size = 33
local most_places = 4096
local grant_lease = 2000000 -- µs: until the grantee extends it, for it may have died in the line
local grace = 5000 -- ms that a record with a line outlives its lease, so that the line is passed on

-- position returns where a token's place begins, nil if it has none.
local function position(line, token)
  for at = 1, #line, place_size do
    if string.sub(line, at, at + 15) == token then
      return at
    end
  end
end

-- tell sends a word to the process of the place that begins there and reports whether somebody listens.
-- A word is the token, what it is about, a number, and the record's key.
local function tell(key, line, at, word)
  local token, process = string.sub(line, at, at + 15), string.sub(line, at + 17, at + 32)
  local receivers
  if string.sub(line, at + 16, at + 16) == 's' then
    receivers = redis.pcall('SPUBLISH', key .. process, token .. word .. ' ' .. key)
  else
    local prefix = string.match(key, '^(.*){')
    receivers = redis.pcall('PUBLISH', prefix .. 'process:' .. process, token .. word .. ' ' .. key)
  end
  return type(receivers) == 'number' and receivers > 0
end

-- pass_on makes the first in the line the owner whose process is alive. The token given, that of the
-- claim that is being carried out if there is one, is alive, is not told, and has the whole lease. It
-- returns the token of the new owner, nil if the line is empty, and what is left of the line.
local function pass_on(key, line, fence, now, lapse, token, lease)
  local text = string.format('%.0f', fence)
  for at = 1, #line, place_size do
    local first = string.sub(line, at, at + 15)
    if first == token or tell(key, line, at, 'granted ' .. text) then
      line = string.sub(line, at + place_size)
      if first ~= token then
        lease = grant_lease
      end
      local keeps = math.ceil(lease / 1000) + lapse + (#line > 0 and grace or 0)
      keeps = string.format('%.0f', keeps)
      local there = redis.call('PEXPIRE', key, keeps) == 1 -- first: it needs no memory
      local ends = string.format('%.0f', now - fence + lease)
      redis.call('HSET', key, 'v', '1', 't', first, 'f', text, 'e', ends, 'q', line)
      if not there then -- an emulation's clock went on, and the record had just expired
        redis.call('PEXPIRE', key, keeps)
      end
      return first, line
    end
  end
  return nil, ''
end

-- Tries to make a token the owner of a record, or gives it a place in the record's line.
--
-- KEYS[1] the record: one hash with these fields
--   t  token of the owner, or of who completed it
--   v  version of this format, "1"
--   f  fence of the owner, near the server time in µs
--   e  end of the owner's lease, server time in µs, counted from f; "done" once completed
--   p  fingerprint; absent when the claim had none
--   l  lapse in ms: how long the record stays when its lease ends unused; absent when not at all
--   a  answer; absent until completed, and in a tombstone
--   q  the line (line.lua); absent or empty without one
-- ARGV[1] stamp: the token (16 bytes), then 8 bytes that no other call of its process has. Every
--         reply begins with it, so that the reply to another call is not taken for this one's.
-- ARGV[2] lease in µs, [3] lease plus lapse in ms, [4] fingerprint, "" for none,
-- ARGV[5] lapse in ms, "" for none, [6] the claim's place in the line, "" if it does not wait,
-- ARGV[7] token of an owner whose lease ends with this claim, "" for none
-- Replies stamp, status, and after a space its value: "granted" with the fence, "held" with the rest of
-- the lease in µs, "queued" with when to ask again in µs, "lapsed" with the rest of the record in ms,
-- "completed" with the answer, or without space and value if there is none, "mismatch", "unreadable".

local key, stamp, fingerprint = KEYS[1], ARGV[1], ARGV[4]
local token = string.sub(stamp, 1, 16)
local time = redis.call('TIME')
-- Put together as text: Lua formats numbers of this size slowly, or not in full.
local now = time[1] .. string.sub('00000' .. time[2], -6)

local record = redis.call('EXISTS', key) == 1 and redis.call('HMGET', key, 'v', 't', 'f', 'e', 'p', 'l', 'a', 'q')
if not record or not record[1] and redis.call('EXISTS', key) == 0 then -- an emulation's clock goes on inside a script
  if fingerprint == '' then
    redis.call('HSET', key, 'v', '1', 't', token, 'f', now, 'e', ARGV[2])
  else
    redis.call('HSET', key, 'v', '1', 't', token, 'f', now, 'e', ARGV[2], 'p', fingerprint)
  end
  if ARGV[5] ~= '' then
    redis.call('HSET', key, 'l', ARGV[5])
  end
  local expires = redis.pcall('PEXPIRE', key, ARGV[3])
  if type(expires) == 'table' then -- NOPERM: without a TTL the record would stay for good
    redis.call('DEL', key)
    return expires
  end
  return stamp .. 'granted ' .. now
end

local last, rest = tonumber(record[3] or ''), tonumber(record[4] or '')
if record[1] ~= '1' or not record[2] or not last or not (last >= 0 and last <= 2^53)
    or record[4] ~= 'done' and not (rest and rest >= -2^53 and rest <= 2^53) then -- nor is "nan" a number
  return stamp .. 'unreadable'
end
if record[5] and fingerprint ~= '' and record[5] ~= fingerprint then
  return stamp .. 'mismatch'
end
if not rest then
  return stamp .. (record[7] and 'completed ' .. record[7] or 'completed')
end
now = tonumber(now)
rest = last + rest - now

--[[ line.lua ]]

local line, lapse, place = record[8] or '', tonumber(record[6] or '0'), ARGV[6]
if #line % place_size ~= 0 then -- something else: those in it ask again
  line = ''
end
local queued = position(line, token)

if rest > 0 and record[2] ~= ARGV[7] then
  if record[2] == token then -- our own claim, sent again because its reply was lost, or granted in the line
    redis.call('PEXPIRE', key, ARGV[3] + (line ~= '' and grace or 0))
    redis.call('HSET', key, 'e', string.format('%.0f', now - last + ARGV[2]))
    return stamp .. 'granted ' .. record[3]
  end
  if place == '' or not queued and #line >= most_places * place_size then
    return stamp .. string.format('held %.0f', rest)
  end
  if not queued then
    redis.call('HSET', key, 'q', line .. place)
    redis.call('PEXPIRE', key, string.format('%.0f', math.ceil(rest / 1000) + lapse + grace))
  end
  -- Those before it may be dead, and be made owners until it asks; and words get lost.
  rest = math.min(rest, (queued or #line + 1) > 1 and grant_lease or grace * 1000)
  return stamp .. string.format('queued %.0f', rest)
end
if rest <= 0 and record[6] then
  return stamp .. string.format('lapsed %.0f', math.max(0, redis.call('PTTL', key))) -- see above: its clock goes on
end

-- The key is free: those in the line come first.
if not queued then
  line = line .. (place ~= '' and place or token .. string.rep('-', place_size - 16))
end
-- The owner had 256 of them, though no more than one for each µs: where the clock is past its fence, the
-- time is above all that it used. To add 256 then would let the fences of a busy key run ahead of the
-- clock, and fall when its record goes.
local fence = now > last and now or last + 256
local owner, behind = pass_on(key, line, fence, now, lapse, token, tonumber(ARGV[2]))
if owner == token then
  if fingerprint ~= '' then
    redis.call('HSET', key, 'p', fingerprint)
  end
  if ARGV[5] ~= '' then
    redis.call('HSET', key, 'l', ARGV[5])
    redis.call('PEXPIRE', key, ARGV[3] + (behind ~= '' and grace or 0))
  end
  return stamp .. string.format('granted %.0f', fence)
end
if place == '' then -- it does not wait, or nothing would be heard at the moment
  if not queued then
    redis.call('HSET', key, 'q', string.sub(behind, 1, #behind - place_size))
  end
  return stamp .. string.format('held %.0f', grant_lease)
end
return stamp .. string.format('queued %.0f', grant_lease)

-- Read before every script: what a record is.
--
-- A record is one hash, KEYS[1]:
--   v  version of this format, "1"
--   t  token of the owner, or of who completed it
--   f  fence of the owner
--   u  end of the owner's lease, server time in µs; absent once completed
--   p  fingerprint; absent when the claim had none
--   l  lapse in ms: how long the record stays when its lease ends unused; absent when not at all
--   a  answer; absent until completed, and in a tombstone
--
-- ARGV[1] is the stamp of this call: the token it speaks for, then bytes that no other call has.
-- It comes first in every reply, so that the reply to another call is not taken for this one's.

local stamp, token = ARGV[1], string.sub(ARGV[1], 1, 16)

local function now()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

-- Numbers of this size lose digits when Lua prints them its own way.
local function text(number)
  return string.format('%.0f', number)
end

-- read returns the record, or nil and the status to reply with: 'absent' or 'unreadable'.
local function read()
  local field = redis.call('HMGET', KEYS[1], 'v', 't', 'f', 'u', 'p', 'l')
  if not field[1] then
    if redis.call('EXISTS', KEYS[1]) == 0 then
      return nil, 'absent'
    end
    return nil, 'unreadable'
  end
  local record = {
    token = field[2], fence = tonumber(field[3] or ''), ends = field[4] and tonumber(field[4]),
    fingerprint = field[5], lapse = field[6] and tonumber(field[6]),
  }
  if field[1] ~= '1' or not record.token or not record.fence
      or field[4] and not record.ends or field[6] and not record.lapse then
    return nil, 'unreadable'
  end
  return record
end

-- owned says whether the lease is running and the token of this call holds it.
local function owned(record)
  return record.token == token and record.ends and now() < record.ends
end

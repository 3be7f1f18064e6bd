-- Tries to make a token the owner of a record.
--
-- KEYS[1] the record: one hash with these fields
--   v  version of this format, "1"
--   t  token of the owner, or of who completed it
--   f  fence of the owner
--   u  end of the owner's lease, server time in µs
--   p  fingerprint; absent when the claim had none
--   l  lapse in ms: how long the record stays when its lease ends unused; absent when not at all
--   d  absent until completed; then "a" with an answer, "n" without
--   a  the answer
-- ARGV[1] stamp: the token, then bytes that no other call of its process has. It comes first in
--         every reply, so that the reply to another call is not taken for this one's.
-- ARGV[2] token, [3] lease in µs, [4] lease plus lapse in ms, [5] fingerprint, "" for none,
-- ARGV[6] lapse in ms, absent for none
-- Replies {stamp, status, value}: 'granted' with the fence, 'held' with the rest of the lease in µs,
-- 'lapsed' with the rest of the record in ms, 'completed' with the answer if there is one,
-- 'mismatch', 'unreadable'.

local key, stamp, token, fingerprint = KEYS[1], ARGV[1], ARGV[2], ARGV[5]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local fence = now

if redis.call('EXISTS', key) == 1 then
  local record = redis.call('HMGET', key, 'v', 't', 'f', 'u', 'p', 'l', 'd')
  local last, ends = tonumber(record[3] or ''), tonumber(record[4] or '')
  if record[1] ~= '1' or not record[2] or not last or not ends then
    return {stamp, 'unreadable'}
  end
  if record[5] and fingerprint ~= '' and record[5] ~= fingerprint then
    return {stamp, 'mismatch'}
  end
  if record[7] then
    return {stamp, 'completed', record[7] == 'a' and redis.call('HGET', key, 'a') or nil}
  end
  if now < ends then
    if record[2] ~= token then
      return {stamp, 'held', ends - now}
    end
    fence = last -- our own claim, sent again because its reply was lost
  elseif record[6] then
    return {stamp, 'lapsed', redis.call('PTTL', key)}
  else
    fence = math.max(last + 1, now)
    redis.call('DEL', key)
  end
end

redis.call('HSET', key, 'v', '1', 't', token, 'f', fence, 'u', now + ARGV[3])
if fingerprint ~= '' then
  redis.call('HSET', key, 'p', fingerprint)
end
if ARGV[6] then
  redis.call('HSET', key, 'l', ARGV[6])
end
redis.call('PEXPIRE', key, ARGV[4])
return {stamp, 'granted', fence}

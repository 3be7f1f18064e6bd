-- KEYS[1] record
-- ARGV[1] stamp, [2] lease in µs, [3] lapse in ms ("0": none), [4] fingerprint ("": none)
-- Replies stamp, status, and with 'granted' the fence, with 'held' the rest of the lease in µs, with
-- 'lapsed' the rest of the record in ms, with 'completed' the answer unless it is a tombstone.

local time, lease, lapse, fingerprint = now(), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local record, missing = read()
local fence = time

if record then
  if record.fingerprint and fingerprint ~= '' and record.fingerprint ~= fingerprint then
    return {stamp, 'mismatch'}
  end
  if not record.ends then
    return {stamp, 'completed', redis.call('HGET', KEYS[1], 'a')}
  end
  if time < record.ends then
    if record.token ~= token then
      return {stamp, 'held', record.ends - time}
    end
    fence = record.fence -- our own claim, sent again because its reply was lost
  elseif record.lapse then
    return {stamp, 'lapsed', redis.call('PTTL', KEYS[1])}
  else
    fence = math.max(record.fence + 1, time)
    redis.call('DEL', KEYS[1])
  end
elseif missing ~= 'absent' then
  return {stamp, missing}
end

redis.call('HSET', KEYS[1], 'v', '1', 't', token, 'f', text(fence), 'u', text(time + lease))
if fingerprint ~= '' then
  redis.call('HSET', KEYS[1], 'p', fingerprint)
end
if lapse > 0 then
  redis.call('HSET', KEYS[1], 'l', text(lapse))
end
redis.call('PEXPIRE', KEYS[1], text(math.ceil(lease / 1000) + lapse))
return {stamp, 'granted', fence}

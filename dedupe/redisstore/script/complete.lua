-- KEYS[1] record
-- ARGV[1] stamp, [2] retention in ms, [3] answer; absent for a tombstone
-- Replies stamp and 'completed' or 'lost'.

local record, missing = read()
if missing == 'unreadable' then
  return {stamp, missing}
end
if record and record.token == token and not record.ends then
  return {stamp, 'completed'} -- by us, the reply was lost
end
if not record or not owned(record) then
  return {stamp, 'lost'}
end
-- PEXPIRE comes first because it needs no memory: a script that has written once may go on writing
-- when Redis is full, and what ran must not run again.
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('HDEL', KEYS[1], 'u', 'l')
if ARGV[3] then
  redis.call('HSET', KEYS[1], 'a', ARGV[3])
end
return {stamp, 'completed'}

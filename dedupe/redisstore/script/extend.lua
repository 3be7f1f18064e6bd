-- KEYS[1] record
-- ARGV[1] stamp, [2] lease in µs
-- Replies stamp and 'extended' or 'lost'.

local record, missing = read()
if missing == 'unreadable' then
  return {stamp, missing}
end
if not record or not owned(record) then
  return {stamp, 'lost'}
end
-- PEXPIRE comes first because it needs no memory: a script that has written once may go on writing
-- when Redis is full.
redis.call('PEXPIRE', KEYS[1], text(math.ceil(tonumber(ARGV[2]) / 1000) + (record.lapse or 0)))
redis.call('HSET', KEYS[1], 'u', text(now() + tonumber(ARGV[2])))
return {stamp, 'extended'}

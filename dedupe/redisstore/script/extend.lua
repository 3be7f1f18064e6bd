-- Moves the end of an owner's lease. See claim.lua for the record.
--
-- KEYS[1] the record
-- ARGV[1] stamp, [2] token, [3] lease in µs, [4] lease in ms
-- Replies {stamp, status}: 'extended', 'lost', 'unreadable'.

local record = redis.call('HMGET', KEYS[1], 'v', 't', 'u', 'l', 'd')
local ends = tonumber(record[3] or '')
if record[1] ~= '1' or not ends then
  return {ARGV[1], redis.call('EXISTS', KEYS[1]) == 0 and 'lost' or 'unreadable'}
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if record[2] ~= ARGV[2] or record[5] or now >= ends then
  return {ARGV[1], 'lost'}
end
-- PEXPIRE comes first because it needs no memory: a script that has written once may go on writing
-- when Redis is full.
redis.call('PEXPIRE', KEYS[1], ARGV[4] + (record[4] or 0))
redis.call('HSET', KEYS[1], 'u', now + ARGV[3])
return {ARGV[1], 'extended'}

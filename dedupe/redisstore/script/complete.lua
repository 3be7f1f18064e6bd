-- Ends an owner's lease and keeps its answer. See claim.lua for the record.
--
-- KEYS[1] the record
-- ARGV[1] stamp, [2] token, [3] retention in ms, [4] answer, absent for a tombstone
-- Replies {stamp, status}: 'completed', 'lost', 'unreadable'.

local record = redis.call('HMGET', KEYS[1], 'v', 't', 'u', 'd')
local ends = tonumber(record[3] or '')
if record[1] ~= '1' or not ends then
  return {ARGV[1], redis.call('EXISTS', KEYS[1]) == 0 and 'lost' or 'unreadable'}
end
if record[2] ~= ARGV[2] then
  return {ARGV[1], 'lost'}
end
if record[4] then
  return {ARGV[1], 'completed'} -- by us; the reply was lost
end
local time = redis.call('TIME')
if time[1] * 1000000 + time[2] >= ends then
  return {ARGV[1], 'lost'}
end
-- PEXPIRE comes first because it needs no memory: a script that has written once may go on writing
-- when Redis is full, and what ran must not run again.
redis.call('PEXPIRE', KEYS[1], ARGV[3])
if ARGV[4] then
  redis.call('HSET', KEYS[1], 'd', 'a', 'a', ARGV[4])
else
  redis.call('HSET', KEYS[1], 'd', 'n')
end
return {ARGV[1], 'completed'}

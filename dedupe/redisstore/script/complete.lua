-- Ends an owner's lease and keeps its answer. See claim.lua for the record.
--
-- KEYS[1] the record
-- ARGV[1] stamp, [2] retention in ms, [3] answer, absent for a tombstone
-- Replies stamp and status: "completed", "lost", "unreadable".

local key, stamp = KEYS[1], ARGV[1]
local record = redis.call('HMGET', key, 'v', 't', 'f', 'e', 'q')
local fence, ends = tonumber(record[3] or ''), tonumber(record[4] or '')
if record[1] ~= '1' or not fence or not (fence >= 0 and fence <= 2^53)
    or record[4] ~= 'done' and not (ends and ends >= -2^53 and ends <= 2^53) then
  return stamp .. (redis.call('EXISTS', key) == 0 and 'lost' or 'unreadable')
end
if record[2] ~= string.sub(stamp, 1, 16) then
  return stamp .. 'lost'
end
if not ends then
  return stamp .. 'completed' -- by us; the reply was lost
end
local time = redis.call('TIME')
if time[1] * 1000000 + time[2] >= fence + ends then
  return stamp .. 'lost'
end
-- PEXPIRE comes first because it needs no memory: a script that has written once may go on writing
-- when Redis is full, and what ran must not run again.
if redis.call('PEXPIRE', key, ARGV[2]) == 0 then
  return stamp .. 'lost'
end
if ARGV[3] then
  redis.call('HSET', key, 'e', 'done', 'a', ARGV[3])
else
  redis.call('HSET', key, 'e', 'done')
end

local line = record[5] or ''
if line ~= '' then -- they all find the answer when they ask
  --[[ line.lua ]]
  for at = 1, #line, place_size do
    tell(key, line, at, 'again 0')
  end
  redis.call('HDEL', key, 'q')
end
return stamp .. 'completed'

-- Moves the end of an owner's lease. See claim.lua for the record.
--
-- KEYS[1] the record
-- ARGV[1] stamp, [2] lease in µs, [3] lease in ms
-- Replies stamp and status: "extended", "lost", "unreadable".

local key, stamp = KEYS[1], ARGV[1]
local record = redis.call('HMGET', key, 'v', 't', 'f', 'e', 'l', 'q')
local fence, ends = tonumber(record[3] or ''), tonumber(record[4] or '')
if record[1] ~= '1' or not fence or not (fence >= 0 and fence <= 2^53)
    or record[4] ~= 'done' and not (ends and ends >= -2^53 and ends <= 2^53) then
  return stamp .. (redis.call('EXISTS', key) == 0 and 'lost' or 'unreadable')
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if record[2] ~= string.sub(stamp, 1, 16) or not ends or now >= fence + ends then
  return stamp .. 'lost'
end
-- PEXPIRE comes first because it needs no memory: a script that has written once may go on writing
-- when Redis is full.
-- A record with a line outlives its lease, so that the line is passed on.
local grace = (record[6] or '') ~= '' and 5000 or 0
if redis.call('PEXPIRE', key, ARGV[3] + (record[5] or 0) + grace) == 0 then
  return stamp .. 'lost'
end
redis.call('HSET', key, 'e', string.format('%.0f', now - fence + ARGV[2]))
return stamp .. 'extended'

-- Ends an owner's lease and forgets the record. See claim.lua for it.
--
-- KEYS[1] the record
-- ARGV[1] stamp
-- Replies stamp and status: "released", "lost", "unreadable".

local key, stamp = KEYS[1], ARGV[1]
local record = redis.call('HMGET', key, 'v', 't', 'f', 'e')
local fence, ends = tonumber(record[3] or ''), tonumber(record[4] or '')
if record[1] ~= '1' or not fence or not (fence >= 0 and fence <= 2^53)
    or record[4] ~= 'done' and not (ends and ends >= -2^53 and ends <= 2^53) then
  return stamp .. (redis.call('EXISTS', key) == 0 and 'released' or 'unreadable')
end
if not ends or record[2] ~= string.sub(stamp, 1, 16) then
  return stamp .. 'lost'
end
redis.call('DEL', key)
return stamp .. 'released'

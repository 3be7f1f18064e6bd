-- Ends an owner's lease and forgets the record. See claim.lua for it.
--
-- KEYS[1] the record
-- ARGV[1] stamp
-- Replies stamp and status: "released", "lost", "unreadable".

local key, stamp = KEYS[1], ARGV[1]
local record = redis.call('HMGET', key, 'v', 't', 'f', 'u')
if record[1] ~= '1' or not tonumber(record[3] or '') or not tonumber(record[4] or '') then
  return stamp .. (redis.call('EXISTS', key) == 0 and 'released' or 'unreadable')
end
if record[2] ~= string.sub(stamp, 1, 16) or record[4] == '0' then
  return stamp .. 'lost'
end
redis.call('DEL', key)
return stamp .. 'released'

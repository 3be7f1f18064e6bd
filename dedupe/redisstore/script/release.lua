-- Ends an owner's lease and forgets the record. See claim.lua for it.
--
-- KEYS[1] the record
-- ARGV[1] stamp, [2] token
-- Replies {stamp, status}: 'released', 'lost', 'unreadable'.

local record = redis.call('HMGET', KEYS[1], 'v', 't', 'd')
if record[1] ~= '1' or not record[2] then
  return {ARGV[1], redis.call('EXISTS', KEYS[1]) == 0 and 'released' or 'unreadable'}
end
if record[2] ~= ARGV[2] or record[3] then
  return {ARGV[1], 'lost'}
end
redis.call('DEL', KEYS[1])
return {ARGV[1], 'released'}

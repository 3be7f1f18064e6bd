-- KEYS[1] record
-- ARGV[1] stamp
-- Replies stamp and 'released' or 'lost'.

local record, missing = read()
if missing == 'absent' then
  return {stamp, 'released'}
end
if missing then
  return {stamp, missing}
end
if record.token ~= token or not record.ends then
  return {stamp, 'lost'}
end
redis.call('DEL', KEYS[1])
return {stamp, 'released'}

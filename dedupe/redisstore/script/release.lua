-- Ends an owner's lease, and passes the key on or forgets the record; or takes a claim out of the line.
-- See claim.lua for the record.
--
-- KEYS[1] the record
-- ARGV[1] stamp
-- Replies stamp and status: "released", "lost", "unreadable".

local key, stamp = KEYS[1], ARGV[1]
local token = string.sub(stamp, 1, 16)
local record = redis.call('HMGET', key, 'v', 't', 'f', 'e', 'q', 'l')
local last, ends, line = tonumber(record[3] or ''), tonumber(record[4] or ''), record[5] or ''
if record[1] ~= '1' or not last or not (last >= 0 and last <= 2^53)
    or record[4] ~= 'done' and not (ends and ends >= -2^53 and ends <= 2^53) then
  return stamp .. (redis.call('EXISTS', key) == 0 and 'released' or 'unreadable')
end
if ends and line == '' and record[2] == token then
  redis.call('DEL', key)
  return stamp .. 'released'
end
if not ends or line == '' then
  return stamp .. 'lost'
end

--[[ line.lua ]]

if record[2] ~= token then
  local at = position(line, token)
  if not at then
    return stamp .. 'lost'
  end
  redis.call('HSET', key, 'q', string.sub(line, 1, at - 1) .. string.sub(line, at + place_size))
  return stamp .. 'released'
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if not pass_on(key, line, now > last and now or last + 256, now, tonumber(record[6] or '0')) then
  redis.call('DEL', key)
end
return stamp .. 'released'

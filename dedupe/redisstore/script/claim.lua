-- Tries to make a token the owner of a record.
--
-- KEYS[1] the record: one hash with these fields
--   v  version of this format, "1"
--   t  token of the owner, or of who completed it
--   f  fence of the owner, near the server time in µs
--   e  end of the owner's lease, server time in µs, counted from f; "done" once completed
--   p  fingerprint; absent when the claim had none
--   l  lapse in ms: how long the record stays when its lease ends unused; absent when not at all
--   a  answer; absent until completed, and in a tombstone
-- ARGV[1] stamp: the token (16 bytes), then 8 bytes that no other call of its process has. Every
--         reply begins with it, so that the reply to another call is not taken for this one's.
-- ARGV[2] lease in µs, [3] lease plus lapse in ms, [4] fingerprint, "" for none,
-- ARGV[5] lapse in ms, absent for none
-- Replies stamp, status, and after a space its value: "granted" with the fence, "held" with the rest
-- of the lease in µs, "lapsed" with the rest of the record in ms, "completed" with the answer, or
-- without space and value if there is none, "mismatch", "unreadable".

local key, stamp, fingerprint = KEYS[1], ARGV[1], ARGV[4]
local token = string.sub(stamp, 1, 16)
local time = redis.call('TIME')
-- Fence and end are put together as text: Lua formats numbers of this size slowly, or not in full.
local fence, ends = time[1] .. string.sub('00000' .. time[2], -6), ARGV[2]

local record = redis.call('EXISTS', key) == 1 and redis.call('HMGET', key, 'v', 't', 'f', 'e', 'p', 'l', 'a')
if record and not record[1] and redis.call('EXISTS', key) == 0 then
  record = nil -- it expired just now: an emulation's clock goes on inside a script
end
if record then
  local last, rest = tonumber(record[3] or ''), tonumber(record[4] or '')
  if record[1] ~= '1' or not record[2] or not last or not (last >= 0 and last <= 2^53)
      or record[4] ~= 'done' and not (rest and rest >= -2^53 and rest <= 2^53) then -- nor is "nan" a number
    return stamp .. 'unreadable'
  end
  if record[5] and fingerprint ~= '' and record[5] ~= fingerprint then
    return stamp .. 'mismatch'
  end
  if not rest then
    return stamp .. (record[7] and 'completed ' .. record[7] or 'completed')
  end
  local now = tonumber(fence)
  rest = last + rest - now
  if rest > 0 then
    if record[2] ~= token then
      return stamp .. string.format('held %.0f', rest)
    end
    fence = record[3] -- our own claim, sent again because its reply was lost
    ends = string.format('%.0f', now - last + ARGV[2])
  elseif record[6] then
    return stamp .. string.format('lapsed %.0f', redis.call('PTTL', key))
  else
    redis.call('DEL', key)
    if last >= now then
      fence = string.format('%.0f', last + 1)
      ends = string.format('%.0f', now - last - 1 + ARGV[2])
    end
  end
end

redis.call('HSET', key, 'v', '1', 't', token, 'f', fence, 'e', ends)
if fingerprint ~= '' then
  redis.call('HSET', key, 'p', fingerprint)
end
if ARGV[5] then
  redis.call('HSET', key, 'l', ARGV[5])
end
local expires = redis.pcall('PEXPIRE', key, ARGV[3])
if type(expires) == 'table' then -- NOPERM: without a TTL the record would stay for good
  redis.call('DEL', key)
  return expires
end
return stamp .. 'granted ' .. fence

-- Takes the lease KEYS[1] for ARGV[2] milliseconds, unless somebody has it: gives the fencing token, or nothing.
--
-- KEYS[2] has the token before. A token is larger than all before it, also if Redis has lost that key: it is at least the
-- time in milliseconds, and larger than ARGV[3], which whoever asks has seen. ARGV[1] tells its holder from all others.
-- What would never end is no lease.
if redis.call('PTTL', KEYS[1]) > 0 then return false end
local time = redis.call('TIME')
local before = math.max(tonumber(redis.call('GET', KEYS[2]) or '0') or 0, tonumber(ARGV[3]))
local token = math.max(before + 1, tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))
local text = string.format('%.0f', token)
redis.call('SET', KEYS[2], text)
redis.call('SET', KEYS[1], text .. ':' .. ARGV[1], 'PX', ARGV[2])
return text

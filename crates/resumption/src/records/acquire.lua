-- Acquires the lease KEYS[1] for ARGV[2] milliseconds, unless it is held: returns the fencing token, or nothing.
--
-- KEYS[2] holds the previous token. A token is larger than all before it, even if Redis has lost that key: it is at least
-- the time in milliseconds, and larger than ARGV[3], which the caller has seen. ARGV[1] identifies the holder.
-- A value without an expiry is not a lease.
if redis.call('PTTL', KEYS[1]) > 0 then return false end
local time = redis.call('TIME')
local before = math.max(tonumber(redis.call('GET', KEYS[2]) or '0') or 0, tonumber(ARGV[3]))
local token = math.max(before + 1, tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))
local text = string.format('%.0f', token)
redis.call('SET', KEYS[2], text)
redis.call('SET', KEYS[1], text .. ':' .. ARGV[1], 'PX', ARGV[2])
return text

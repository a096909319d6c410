-- Notes in KEYS[1] that the member ARGV[1] is alive and has all records up to the version ARGV[2]. Returns the newest
-- version, held by KEYS[2]. Members without a sign of life for ARGV[3] milliseconds are removed.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
if redis.call('TYPE', KEYS[1]).ok ~= 'hash' then redis.call('DEL', KEYS[1]) end
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', now) .. ' ' .. ARGV[2])
local members = redis.call('HGETALL', KEYS[1])
for index = 1, #members, 2 do
    local heard = tonumber(string.match(members[index + 1], '^%d+') or '0')
    if now - heard > tonumber(ARGV[3]) then redis.call('HDEL', KEYS[1], members[index]) end
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return redis.call('GET', KEYS[2]) or ''

-- Returns the number of live members in KEYS[1] that do not have the version ARGV[1] yet. Versions have 20 digits each.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local behind = 0
for _, note in ipairs(redis.call('HVALS', KEYS[1])) do
    local heard, version = string.match(note, '^(%d+) (%d+)$')
    local alive = heard and now - tonumber(heard) <= tonumber(ARGV[2])
    if alive and version < ARGV[1] then behind = behind + 1 end
end
return behind

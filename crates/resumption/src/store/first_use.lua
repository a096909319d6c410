-- Claims the single use of early data identified by ARGV[1]: returns 1 for the first use, else 0.
--
-- Uses are remembered by periods of ARGV[2] seconds, in the set of the current period and the set of the previous one;
-- periods alternate between KEYS[2] and KEYS[3]. KEYS[1] holds the time since which this has run without a gap, and the
-- size of each set. Other sizes, or missing keys, mean that uses were deleted (by an eviction, a restart or an operator):
-- a use may then be a replay, and no use counts as the first until a whole period has passed again.
local now = tonumber(redis.call('TIME')[1])
local window = tonumber(ARGV[2])
local period = math.floor(now / window)
local state = redis.call('HMGET', KEYS[1], 'since', 'period', 'young', 'old')
local since, last, young, old = tonumber(state[1]), tonumber(state[2]), tonumber(state[3]), tonumber(state[4])

local function set(number)
    return KEYS[2 + number % 2]
end

local function holds(number, count)
    return redis.call('SCARD', set(number)) == count
end

local complete = since and last and young and old and last <= period
if complete and last == period then
    complete = holds(period, young) and holds(period - 1, old)
elseif complete and last == period - 1 then
    complete = holds(last, young)
    young, old = 0, young
    redis.call('DEL', set(period))
else
    -- Older uses, if any, can no longer be replayed.
    young, old = 0, 0
    redis.call('DEL', KEYS[2], KEYS[3])
end
if not complete then
    since, young, old = now, 0, 0
    redis.call('DEL', KEYS[2], KEYS[3])
end

local first = 0
if now - since >= window and redis.call('SISMEMBER', set(period - 1), ARGV[1]) == 0 then
    first = redis.call('SADD', set(period), ARGV[1])
    young = young + first
    redis.call('EXPIRE', set(period), 3 * window)
end
redis.call('HSET', KEYS[1], 'since', since, 'period', period, 'young', young, 'old', old)
return first

-- Writes the record KEYS[2] if the lease KEYS[1] is still ARGV[1], and notes its version ARGV[2] as the newest of all
-- in KEYS[3]: returns 1, else 0. A former holder of the lease cannot write. ARGV[3] is the record, ARGV[4] its lifetime
-- in milliseconds.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[4])
redis.call('SET', KEYS[3], ARGV[2], 'PX', ARGV[4])
return 1

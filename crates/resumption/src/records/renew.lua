-- Renews the lease KEYS[1] for ARGV[2] milliseconds, or ends it with 0, if it is still ARGV[1]: returns 1, else 0.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1

#!lua flags=allow-oom
-- renew: extends the lease. Allowed when memory is full: a turn must live long enough to park (F22).
-- KEYS, ARGV 1-4: prelude. ARGV: epoch nonce ttl
-- Reply: {OK, flags}; FENCED
local epoch, nonce, ttl = num(), str(), num()

if fenced(epoch, nonce) then return {'FENCED'} end
lease(ttl)
save()
return {'OK', flags()}

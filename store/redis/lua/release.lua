#!lua flags=allow-oom
-- release: gives the lease up with the turn left open and due at once. Allowed when memory is full (F22).
-- KEYS, ARGV 1-4: prelude. ARGV: epoch nonce
-- Reply: {OK}; FENCED
local epoch, nonce = num(), str()

if s('rc') == CALL then return {'OK'} end -- this very call, its reply was lost
if fenced(epoch, nonce) then return {'FENCED'} end
drop_lease()
set('rel', n('turn') ~= 0 and 1 or 0)
set('rc', CALL)
save(true)
return {'OK'}

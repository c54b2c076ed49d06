#!lua
-- copydoc: writes a document with its version, whatever stands there.
-- KEYS, ARGV 1-4: prelude. ARGV: name version data
-- Reply: {OK}
local name, version, data = str(), num(), str()
call('HSET', P .. 'doc', name, data)
call('HSET', P .. 'docv', name, version)
call('HSET', P .. 'docc', name, CALL)
return {'OK'}

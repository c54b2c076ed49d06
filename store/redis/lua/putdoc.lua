#!lua
-- putdoc: writes a document if its version is still the one given.
-- KEYS, ARGV 1-4: prelude. ARGV: name version data
-- Reply: {OK}; STALE
local name, version, data = str(), num(), str()

if tonumber(call('HGET', P .. 'docv', name) or 0) ~= version then
  -- docc names the call that wrote last: sent again after a lost reply it has already done its work.
  return {call('HGET', P .. 'docc', name) == CALL and 'OK' or 'STALE'}
end
call('HSET', P .. 'doc', name, data)
call('HSET', P .. 'docv', name, version + 1)
call('HSET', P .. 'docc', name, CALL)
return {'OK'}

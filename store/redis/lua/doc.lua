#!lua flags=no-writes
-- doc: reads a document; version 0 = absent.
-- KEYS, ARGV 1-4: prelude. ARGV: name
-- Reply: {OK, version, data}
local name = str()
return {'OK', tonumber(call('HGET', P .. 'docv', name) or 0), call('HGET', P .. 'doc', name) or ''}

#!lua flags=no-writes
-- names: lanes of the partition in key order behind one.
-- KEYS, ARGV 1-4: prelude. ARGV: after limit (-1 = all)
-- Reply: {OK, {lane …}}
local after, limit = str(), num()
return {'OK', call('ZRANGEBYLEX', P .. 'names', after == '' and '-' or '(' .. after, '+', 'LIMIT', 0, limit)}

#!lua flags=no-writes
-- rows: reads rows of one generation.
-- KEYS, ARGV 1-4: prelude. ARGV: gen first (index from 0) last (index, -1 = the newest)
-- Reply: {OK, rows as stored}
local gen, first, last = num(), num(), num()
return {'OK', call('LRANGE', key('r' .. gen), first, last)}

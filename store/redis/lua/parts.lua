#!lua flags=no-writes
-- parts: reads a part of an outbox, for a copy.
-- KEYS, ARGV 1-4: prelude. ARGV: first (index from 0) last (index, -1 = the newest)
-- Reply: {OK, {{id, kind, turn, data} …}}
local first, last, found = num(), num(), {}
for i, p in ipairs(call('LRANGE', key('o'), first, last)) do found[i] = unpk(p) end
return {'OK', found}

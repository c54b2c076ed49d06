#!lua
-- copystats: sets the partition's counters. What waits is counted as accepted where it waits, so that they stay true of
-- each partition, not only of the sum; the rest of all partitions is given to one.
-- KEYS, ARGV 1-4: prelude. ARGV: · {name, value} (none: count only)
-- Reply: {OK, entries that wait in the partition}
local sets, wait = list(function() return {str(), num()} end), 0
for _, lane in ipairs(call('ZRANGE', P .. 'names', 0, -1)) do wait = wait + call('HLEN', P .. 'p:' .. lane) end
for _, name in ipairs(call('HKEYS', P .. 'cnt')) do
  if name ~= 'id' then call('HDEL', P .. 'cnt', name) end
end
call('HSET', P .. 'cnt', 'in_slot', wait, 'accepted', wait)
for _, c in ipairs(sets) do call('HINCRBY', P .. 'cnt', c[1], c[2]) end
return {'OK', wait}

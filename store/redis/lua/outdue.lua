#!lua flags=no-writes
-- outdue: lanes of the partition whose head part may be sent now.
-- KEYS, ARGV 1-4: prelude. ARGV: limit (-1 = all)
-- Reply: {OK, {lane, ms, lane, ms …}}
local limit = num()
return {'OK', call('ZRANGEBYSCORE', P .. 'obx', '-inf', now, 'WITHSCORES', 'LIMIT', 0, limit)}

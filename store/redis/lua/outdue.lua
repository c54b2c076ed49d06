#!lua flags=no-writes
-- outdue: lanes of the partition whose head part may be sent now.
-- KEYS, ARGV 1-4: prelude. ARGV: limit (-1 = all)
-- Reply: {OK, {lane, ms, lane, ms …}}
local limit = num()
local due = call('ZRANGEBYSCORE', P .. 'obx', '-inf', now, 'WITHSCORES', 'LIMIT', 0, limit)
-- As in due: the clock was set back, or a flood's wait is long, and somebody looks (F38).
for _, v in ipairs(call('ZRANGEBYSCORE', P .. 'obx', '(' .. now + 60000, '+inf', 'WITHSCORES', 'LIMIT', 0, limit)) do due[#due + 1] = v end
return {'OK', due}

#!lua flags=no-writes
-- due: lanes of the partition that need a look by now, longest due first. O(log lanes + answers).
-- KEYS, ARGV 1-4: prelude. ARGV: limit (-1 = all)
-- Reply: {OK, {lane, ms, lane, ms …}}
local limit = num()
local due = call('ZRANGEBYSCORE', P .. 'due', '-inf', now, 'WITHSCORES', 'LIMIT', 0, limit)
-- What lies further ahead was written before the server's clock was set back, mostly (F38); a look at a longer lease costs little.
for _, v in ipairs(call('ZRANGEBYSCORE', P .. 'due', '(' .. now + 60000, '+inf', 'WITHSCORES', 'LIMIT', 0, limit)) do due[#due + 1] = v end
return {'OK', due}

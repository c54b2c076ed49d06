#!lua
-- grant: raises the limit of a meter for its window, once for each mark, and wakes who waits for it.
-- KEYS, ARGV 1-4: prelude. ARGV: name window extra mark
-- Reply: {OK, done | dup | gone}
local name, window, extra, mark = str(), num(), num(), 'm' .. str()

local meter = P .. 'mt:' .. name
local v = call('HMGET', meter, 'w', 'e', 'x', 'g', mark)
if not v[1] or tonumber(v[1]) ~= window or now >= tonumber(v[2]) then return {'OK', 'gone'} end
-- The mark holds the call that made it: sent again after a lost reply it has its first answer.
if v[5] then return {'OK', v[5] == CALL and 'done' or 'dup'} end
call('HSET', meter, 'x', tonumber(v[3]) + extra, 'g', tonumber(v[4]) + 1, mark, CALL)
call('PUBLISH', P .. 'w', 'meter:' .. name .. '\n' .. CALL)
return {'OK', 'done'}

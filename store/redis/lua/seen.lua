#!lua flags=no-writes
-- seen: whether the lane has a dedupe mark that still counts.
-- KEYS, ARGV 1-4: prelude. ARGV: mark
-- Reply: {OK, 1 or 0}
local id = str()
for _, b in ipairs({s('ub'), s('uc')}) do
  local v = b ~= '' and call('HGET', key('u' .. b), id)
  if v then return {'OK', now - tonumber(string.match(v, '^%d+')) <= SPAN and 1 or 0} end
end
return {'OK', 0}

#!lua flags=no-writes
-- fates: the newest fates, newest first.
-- KEYS, ARGV 1-4: prelude. ARGV: limit (at most as many as are kept)
-- Reply: {OK, {{ticket, state, turn, step, waited, at, changed, msgs} …}}
local limit, found = num(), {}
for t = n('tk'), math.max(1, n('tk') - limit + 1), -1 do
  local f = call('HGET', key('f'), t)
  if f then
    found[#found + 1] = unpk(f)
    table.insert(found[#found], 1, t)
  end
end
return {'OK', found}

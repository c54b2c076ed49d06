#!lua
-- reset: opens generation+1, fences the runner, closes an open turn without a row, holds what waits (F32).
-- KEYS, ARGV 1-4: prelude. ARGV: dedupe kept (fates) · outs
-- Reply: {OK, lane}
local dedupe, kept, parts = str(), num(), outs()

if marked(dedupe) then return {'OK', view()} end
make()
local turn = n('turn')
if turn ~= 0 then
  for t = math.max(1, n('tk') - kept + 1), n('tk') do
    local f = call('HGET', key('f'), t)
    if f and unpk(f)[2] == turn then fate(t, 'stopped') end
  end
  close_turn()
end
hold()
set('gen', n('gen') + 1)
set('ep', n('ep') + 1)
drop_lease()
for _, f in ipairs({'rel', 'seq', 'sent', 'stop'}) do set(f, 0) end
set('last', '')
set('title', '')
plan(parts)
mark(dedupe, 0, 0, 'OK')
save(true)
return {'OK', view()}

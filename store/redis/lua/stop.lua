#!lua
-- stop: marks the open turn stopped, holds what waits (but with keep) and closes open entries; creates no lane.
-- KEYS, ARGV 1-4: prelude. ARGV: dedupe only drop keep · outs
-- Reply: {OK, dup, turn, entries held or dropped, lane}
local dedupe, only, drop, keep, parts = str(), num(), num(), num(), outs()

if not exists then return {'OK', 0, 0, {}, view()} end
local seen, turn, held = marked(dedupe), 0, {}
if seen then
  if seen.fresh then return unpk(call('GET', key('s'))) end -- this very call, its reply was lost
  return {'OK', 1, 0, {}, view()}
end
if only == 0 or only == n('turn') then
  turn = n('turn')
  set('stop', turn)
  read_slot()
  local which, all = keep == 0 and hold() or {}, {}
  for i, t in ipairs(tickets) do all[i] = t end
  for i, t in ipairs(drop == 1 and all or which) do
    held[i] = entry(t, call('HGET', key('d'), t))
    if drop == 1 then
      cut(t)
      count('dropped')
      fate(t, 'dropped')
    end
  end
end
plan(parts)
mark(dedupe, 0, 0, 'OK')
save(true)
local reply = {'OK', 0, turn, held, view()}
call('SET', key('s'), pack(reply))
return reply

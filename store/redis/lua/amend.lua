#!lua
-- amend: edits, drops or re-routes a slot entry; exactly one of it and a drain or begin wins (F29).
-- KEYS, ARGV 1-4: prelude. ARGV: dedupe kind (edit | drop | set) ticket version data want turn fate · outs
-- Reply: {OK, done, dup, lane}; STALE
local dedupe, kind, t, version, data = str(), str(), num(), num(), str()
local want, turn, state, parts = num(), num(), str(), outs()

if not exists then return {'OK', 0, 0, view()} end
local seen = marked(dedupe)
if seen then return {'OK', seen.done, seen.fresh and 0 or 1, view()} end
read_slot()
local e = entries[t]
if e and version ~= 0 and e[VER] ~= version then return {'STALE'} end
if e and kind == 'edit' then
  e[VER] = e[VER] + 1
  put(t)
  call('HSET', key('d'), t, data)
elseif e and kind == 'drop' then
  cut(t)
  count('dropped')
  fate(t, 'dropped')
elseif e then
  e[VER], e[WANT], e[TURN], e[HELD], e[OPEN] = e[VER] + 1, want, turn, 0, 0
  put(t)
  fate(t, state)
end
if e then plan(parts) end
local done = e and 1 or 0
mark(dedupe, t, done, 'OK')
save(e)
return {'OK', done, 0, view()}

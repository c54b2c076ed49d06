#!lua
-- commit: one step of the open turn, in the order session.Commit states. The newest reply is remembered (F9).
-- KEYS, ARGV 1-4: prelude. ARGV: epoch nonce ttl op seq phase drain step takeout end holdrest
--   · takes · rows · jobs · outs · fates
-- Reply: {OK, seq, flags, steers, more, now, part or nothing}; FENCED; STALE
local epoch, nonce, ttl, op, seq, phase = num(), str(), num(), str(), num(), num()
local drain, step, takeout, ends, holdrest = num(), num(), num(), num(), num()
local take_in, add, js, parts, sets = takes(), rows(), jobs(), outs(), fates()

-- I5: the steers for this turn below the first open entry go onto a tool row no request has carried.
local function move_steers(step)
  local moved, on = {}, n('seq')
  for _, t in ipairs(s('last') == 't' and on > n('sent') and n('stop') ~= n('turn') and waiting() or {}) do
    local e = entries[t]
    if arriving(e) then break end
    if e[WANT] == STEER and e[TURN] == n('turn') then
      if #moved == 0 then set('notes', n('notes') + 1) end
      local r = {'s', on, n('notes'), t, call('HGET', key('d'), t)}
      append(r)
      moved[#moved + 1] = {n('seq'), n('turn'), on, r[3], t, r[5]}
      fate(t, 'attached', n('turn'), step)
      cut(t)
      count('steered')
    end
  end
  set('sent', n('seq'))
  return moved
end
-- The lease stays if entries may run now, or while a job of its holder runs.
local function end_turn()
  close_turn()
  local first = waiting()[1]
  local more = first and not arriving(entries[first])
  local keep = more
  for _, j in pairs(pairs_of('j')) do
    j = unpk(j)
    keep = keep or j[4] == 'running' and j[1] == nonce
  end
  if not keep then drop_lease() end
  return more
end

local before = replay(op)
if before then return before end
if fenced(epoch, nonce) then return {'FENCED'} end
if n('turn') == 0 or n('seq') ~= seq or stale(take_in) then return {'STALE'} end

consume(take_in)
for _, r in ipairs(add) do append(r) end
local steers = drain == 1 and move_steers(step) or {}
put_jobs(js)
local was_empty = call('EXISTS', key('o')) == 0
plan(parts)
for _, f in ipairs(sets) do fate(f[1], f[2], f[3], f[4]) end
if holdrest == 1 then hold() end
lease(ttl)
set('ph', phase)
local more = ends == 1 and end_turn()
set('tch', now)
local reply = {'OK', n('seq'), flags(), steers, more and 1 or 0, now}
if takeout == 1 and was_empty and #parts > 0 then
  take(nonce)
  reply[7] = taken()
end
set('lc', op)
save(true)
return remember(reply)

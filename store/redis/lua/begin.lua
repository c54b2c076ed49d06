#!lua
-- begin: opens a turn: lease with a new epoch, entries consumed, user rows appended and marked sent, or nothing.
-- KEYS, ARGV 1-4: prelude. ARGV: op nonce ttl gen seq owner phase · takes · job ids · rows · fates · outs
-- Reply: {OK, epoch, lane}, remembered under op; STALE; HELD; NEWER
local op, nonce, ttl, gen, seq, owner, phase = str(), str(), num(), num(), num(), str(), num()
local take, told, add, sets, parts = takes(), list(str), rows(), fates(), outs()

if not exists then return {'STALE'} end
if newer() then return {'NEWER'} end
local before = replay(op)
if before then return before end
if leased() and s('non') ~= nonce then return {'HELD'} end
if n('turn') ~= 0 or n('gen') ~= gen or n('seq') ~= seq then return {'STALE'} end
for _, id in ipairs(told) do
  if call('HEXISTS', key('j'), id) == 0 then return {'STALE'} end
end
if stale(take) then return {'STALE'} end

consume(take)
for _, id in ipairs(told) do call('HDEL', key('j'), id) end
set('ep', n('ep') + 1)
set('non', nonce)
lease(ttl)
set('turns', n('turns') + 1)
set('turn', m.turns)
set('tat', now)
set('own', owner)
set('ph', phase)
for _, f in ipairs({'att', 'stop', 'rel'}) do set(f, 0) end
for _, r in ipairs(add) do append(r) end
set('sent', n('seq'))
for _, f in ipairs(sets) do fate(f[1], f[2], f[3] ~= 0 and f[3] or m.turn, f[4]) end
plan(parts)
count('turns')
set('lc', op)
save(true)
return remember({'OK', n('ep'), view()})

#!lua
-- accept: stores an inbound input: dedupe mark, ticket, entry, fate. The mark answers every later call (F8, F10).
-- KEYS, ARGV 1-4: prelude. ARGV: dedupe want turn author msg data group open append title fate
--   cap (entries that wait) max (bytes of an entry) kept (fates) · outs of FULL
-- Reply: {OK | DUP | JOINED | FULL, ticket, lane}
local dedupe, want, turn, author, msg, data = str(), num(), num(), str(), str(), str()
local group, open, join, title, state = str(), num(), num(), str(), str()
local cap, max, kept, full = num(), num(), num(), outs()

local seen = marked(dedupe)
if seen then return {seen.fresh and s('co') or 'DUP', seen.ticket, view()} end
make()
if s('title') == '' and title ~= '' then set('title', title) end
if open > 0 then open = now + open end
local function finish(outcome, ticket)
  mark(dedupe, ticket, 0, outcome)
  save(outcome ~= 'FULL')
  return {outcome, ticket, view()}
end

local wait = waiting()
for _, t in ipairs(join == 1 and group ~= '' and wait or {}) do
  local e = entries[t]
  if e[GROUP] == group and e[AUTHOR] == author and arriving(e)
      and call('HSTRLEN', key('d'), t) + 1 + #data <= max then
    call('HSET', key('d'), t, call('HGET', key('d'), t) .. '\n' .. data)
    e[VER], e[OPEN], e[MSGS][#e[MSGS] + 1] = e[VER] + 1, open, msg
    local demoted = e[WANT] == STEER and want == 0 -- the whole is too long for a note
    if demoted then e[WANT] = 0 end
    put(t)
    local f = call('HGET', key('f'), t)
    if f then
      f = unpk(f)
      f[7][#f[7] + 1] = msg
      call('HSET', key('f'), t, pack(f))
    end
    if demoted then fate(t, 'queued') end
    return finish('JOINED', t)
  end
end
if (n('turn') ~= 0 or turn < 0) and #wait >= cap then
  plan(full)
  count('full')
  return finish('FULL', 0)
end
local t = n('tk') + 1
set('tk', t)
entries[t], tickets[#tickets + 1] = {1, want, turn, 0, open, group, author, now, {msg}}, t
put(t)
call('HSET', key('d'), t, data)
call('HSET', key('f'), t, pack({state, 0, 0, WAITS[state] or 0, now, now, {msg}}))
if t > kept then call('HDEL', key('f'), t - kept) end
count('accepted')
count('in_slot')
return finish('OK', t)

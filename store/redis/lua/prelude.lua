-- prelude: what the scripts share. The loader puts it behind a script's first line.
-- KEYS 1 = prefix of the partition's keys, "gw:{p07}:". All other names are made from it, so they share its slot.
-- ARGV 1 = lane ("" if none), 2 = id of the store, 3 = now in ms (0: the server's clock), 4 = name of this call
--      (a call sent again after a lost reply has the same), then the script's own, read in order by str, num, list.
-- Keys of a lane: m meta, p slot, d the slot's data, r<gen> rows, u<n> dedupe marks of one span, o outbox, f fates,
--      j jobs, c and s the last reply of a turn's write and of a stop. Keys of a partition: due, obx, names (sorted
--      sets of lanes), cnt, doc, docv, docc; w is its channel.
-- What people wrote is bytes here: it is stored and given back, never read and never part of code.
local call, pack, unpk, P, LANE, CALL = redis.call, cmsgpack.pack, cmsgpack.unpack, KEYS[1], ARGV[1], ARGV[4]
if call('HGET', P .. 'cnt', 'id') ~= ARGV[2] then return {'WIPED'} end
local now = tonumber(ARGV[3])
if now == 0 then
  local t = call('TIME')
  now = t[1] * 1000 + math.floor(t[2] / 1000)
end

-- Arguments. A script reads all of them before it writes anything.
local argi = 4
local function str() argi = argi + 1 return ARGV[argi] end
local function num() return tonumber(str()) end
local function list(item)
  local t = {}
  for i = 1, num() do t[i] = item() end
  return t
end
local function outs() return list(function() return {str(), str(), num(), str()} end) end
local function takes() return list(function() return {num(), num()} end) end
local function rows() return list(function() return {str(), num(), num(), num(), str()} end) end
local function fates() return list(function() return {num(), str(), num(), num()} end) end
local function jobs() return list(function() return {str(), num(), {str(), num(), str(), str(), str(), str(), num()}} end) end

-- The lane's meta. n reads a number, s a text; set is written by save.
local function key(kind) return P .. kind .. ':' .. LANE end
local m, dirty, counts = {}, {}, {}
if LANE ~= '' then
  local raw = call('HGETALL', key('m'))
  for i = 1, #raw, 2 do m[raw[i]] = raw[i + 1] end
end
local exists = next(m) ~= nil
local SEAT = string.sub(LANE, 1, 5) == 'seat:' -- a lease alone: no index has it
local function n(f) return tonumber(m[f]) or 0 end
local function s(f) return m[f] or '' end
local function set(f, v)
  m[f], dirty[#dirty + 1], dirty[#dirty + 2] = v, f, v
end
local function count(name, by) counts[name] = (counts[name] or 0) + (by or 1) end
-- The form of what stands in the lane; the first has no number. A version that knows more writes its own when it begins a
-- turn. One of a newer form is left to it: it stands in an index of its own, and is not claimed, begun or removed (F35).
local FORM = 1
local DUE = P .. (n('form') > 1 and 'due' .. n('form') or 'due')
local function newer() return n('form') > FORM end
local function unlink_lane() -- removes the keys of the lane, not its place in the indexes
  for _, kind in ipairs({'m', 'p', 'd', 'o', 'f', 'j', 'c', 's', 'u' .. s('ub'), 'u' .. s('uc')}) do call('UNLINK', key(kind)) end
  for gen = 1, n('gen') do call('UNLINK', key('r' .. gen)) end
end
local function make() -- the lane is there from now on
  if not exists then
    set('gen', 1)
    if not SEAT then call('ZADD', P .. 'names', 0, LANE) end
  end
  exists = true
  set('tch', now)
end

-- The slot. An entry is an array with these places.
local VER, WANT, TURN, HELD, OPEN, GROUP, AUTHOR, AT, MSGS = 1, 2, 3, 4, 5, 6, 7, 8, 9
local INTERRUPT, STEER = 1, 2
local entries, tickets
local function read_slot()
  if entries then return end
  entries, tickets = {}, {}
  local raw = call('HGETALL', key('p'))
  for i = 1, #raw, 2 do
    local t = tonumber(raw[i])
    entries[t], tickets[#tickets + 1] = unpk(raw[i + 1]), t
  end
  table.sort(tickets)
end
local function put(t) call('HSET', key('p'), t, pack(entries[t])) end
local function cut(t)
  call('HDEL', key('p'), t)
  call('HDEL', key('d'), t)
  for i, x in ipairs(tickets) do
    if x == t then table.remove(tickets, i) break end
  end
  entries[t] = nil
  count('in_slot', -1)
end
local function waiting() -- tickets that wait and are not held, in order
  read_slot()
  local w = {}
  for _, t in ipairs(tickets) do
    if entries[t][HELD] == 0 then w[#w + 1] = t end
  end
  return w
end
local function entry(t, data)
  local e = entries[t]
  return {t, e[VER], e[WANT], e[TURN], e[HELD], e[OPEN], e[GROUP], e[AUTHOR], e[AT], e[MSGS], data}
end
local function stale(list) -- whether an entry is gone or changed since the caller read it
  read_slot()
  for _, k in ipairs(list) do
    local e = entries[k[1]]
    if not e or e[VER] ~= k[2] then return true end
  end
  return false
end
local function consume(list)
  for _, k in ipairs(list) do
    if entries[k[1]] then cut(k[1]) count('consumed') end
  end
end

-- Fates: {state, turn, step, waited, at, changed, msgs}
local FINAL = {answered = true, dropped = true, stopped = true, failed = true}
local WAITS = {queued = 1, pending = 1, held = 1}
local function fate(t, state, turn, step)
  local raw = state ~= '' and call('HGET', key('f'), t)
  if not raw then return end
  local f = unpk(raw)
  if FINAL[f[1]] then -- taken once more by a later turn (Fate.Again)
    if not ((f[1] == 'failed' or f[1] == 'stopped') and state == 'running' and (turn or 0) > f[2]) then return end
    f[3] = 0
  end
  f[1], f[4], f[6] = state, WAITS[state] or f[4], now
  if (turn or 0) ~= 0 then f[2] = turn end
  if (step or 0) ~= 0 then f[3] = step end
  call('HSET', key('f'), t, pack(f))
end
local function hold() -- holds all that waits, closes open entries; gives the tickets
  local held = waiting()
  for _, t in ipairs(held) do
    entries[t][HELD], entries[t][OPEN], entries[t][VER] = 1, 0, entries[t][VER] + 1 -- a begin that read it before is stale
    put(t)
    fate(t, 'held')
  end
  return held
end

-- Dedupe marks: "<ms> <ticket> <done>" in the hash of the 48 h they were made in; the one before still counts.
local SPAN = 172800000
local function marked(k) -- the ticket and done of the first answer, or nil; fresh: this very call gave it
  if not exists then return nil end
  for _, b in ipairs({s('ub'), s('uc')}) do
    local v = b ~= '' and call('HGET', key('u' .. b), k)
    if v then
      local at, ticket, done = string.match(v, '^(%d+) (%d+) (%d)$')
      if now - at > SPAN then return nil end
      local fresh = s('cc') == CALL
      if not fresh then call('HINCRBY', P .. 'cnt', 'duplicates', 1) end
      return {ticket = tonumber(ticket), done = tonumber(done), fresh = fresh}
    end
  end
  return nil
end
local function mark(k, ticket, done, outcome)
  local b = math.floor(now / SPAN)
  if s('ub') == '' then
    set('ub', b)
  elseif b > n('ub') then
    if s('uc') ~= '' then call('UNLINK', key('u' .. s('uc'))) end
    if b > n('ub') + 1 then call('UNLINK', key('u' .. s('ub'))) end
    set('uc', b == n('ub') + 1 and s('ub') or '')
    set('ub', b)
  end
  call('HSET', key('u' .. s('ub')), k, now .. ' ' .. ticket .. ' ' .. done)
  set('cc', CALL)
  set('co', outcome)
end

-- Rows: "<type><turn> <ms>[ <on> <n> <tick>]\n<data>", one list per generation, seq = index + 1.
local function append(r)
  local head = r[1] .. n('turn') .. ' ' .. now
  if r[2] ~= 0 or r[3] ~= 0 or r[4] ~= 0 then head = head .. ' ' .. r[2] .. ' ' .. r[3] .. ' ' .. r[4] end
  call('RPUSH', key('r' .. n('gen')), head .. '\n' .. r[5])
  set('seq', n('seq') + 1)
  set('last', r[1])
end

-- The outbox: a list of packed {id, kind, turn, data}. The head's state is in the meta: os state, oa attempt, ot since,
-- on nonce that sends it (planned: that it is kept for until ow), ow not before, or what it was given as.
local function head(state, at, wait)
  set('os', state)
  set('ow', wait)
  call('ZADD', P .. 'obx', wait > 0 and wait or at, LANE)
end
local function plan(parts)
  for _, p in ipairs(parts) do
    if call('RPUSH', key('o'), pack(p)) == 1 then head('planned', now, 0) end
    count('out_planned')
  end
end
local function take(nonce)
  local was, since = 'sending', now
  if s('os') ~= 'planned' then was, since = 'unknown', n('ot') end
  set('oa', n('oa') + 1)
  set('ot', now)
  set('on', nonce)
  set('or', was .. ' ' .. since)
  head('sending', now, 0)
end
local function taken() -- the head as take gave it, and whether it is alone now
  local p, was, since = unpk(call('LINDEX', key('o'), 0)), string.match(s('or'), '^(%a+) (%d+)$')
  return {p[1], p[2], p[3], p[4], was, n('oa'), since, call('LLEN', key('o')) == 1 and 1 or 0}
end

-- The lease.
local function lease(ttl)
  set('til', now + ttl)
  set('ttl', ttl)
end
local function arriving(e) -- one accepted in the future was stored before the server's clock was set back: its time is over (F38)
  return e[OPEN] > now and e[AT] <= now
end
local function leased() -- an end far ahead was written before the server's clock was set back: that lease is over (F38)
  return s('non') ~= '' and now < n('til') and n('til') - now <= 2 * n('ttl')
end
local function fenced(epoch, nonce)
  if nonce ~= '' and s('non') == nonce and n('ep') == epoch then return false end
  call('HINCRBY', P .. 'cnt', 'fenced', 1)
  return true
end
local function drop_lease()
  set('non', '')
  set('til', 0)
end
local function close_turn()
  for _, f in ipairs({'turn', 'stop', 'att', 'ph', 'tat'}) do set(f, 0) end
  set('own', '')
  count('ended')
end
local function put_jobs(js, known) -- {id, told, {owner, turn, name, state, body, data, at}}; known: only those there are
  for _, j in ipairs(js) do
    if j[2] == 1 then
      call('HDEL', key('j'), j[1])
    elseif not known or call('HEXISTS', key('j'), j[1]) == 1 then
      call('HSET', key('j'), j[1], pack(j[3]))
    end
  end
end

-- Replies. The newest one of begin and commit is remembered under its op.
local function replay(op)
  if op == '' or s('lc') ~= op then return nil end
  call('HINCRBY', P .. 'cnt', 'replayed', 1)
  return unpk(call('GET', key('c')))
end
local function remember(reply)
  call('SET', key('c'), pack(reply))
  return reply
end
local function flags() -- stop, intr, waiting, held, steers
  local turn, f = n('turn'), {0, 0, 0, 0, 0}
  if turn ~= 0 and n('stop') == turn then f[1] = 1 end
  read_slot()
  for _, t in ipairs(tickets) do
    local e = entries[t]
    if e[HELD] == 1 then
      f[4] = f[4] + 1
    else
      f[3] = f[3] + 1
      if e[WANT] == INTERRUPT then f[2] = t end
      if e[WANT] == STEER and turn ~= 0 and e[TURN] == turn then f[5] = f[5] + 1 end
    end
  end
  return f
end
local function pairs_of(kind) -- a hash as a table
  local raw, t = call('HGETALL', key(kind)), {}
  for i = 1, #raw, 2 do t[raw[i]] = raw[i + 1] end
  return t
end
local function view() -- the lane: {meta as field, value …; entries; jobs; parts in the outbox; now}
  if not exists then return {{}, {}, {}, 0, now} end
  read_slot()
  local meta, es, js, data = {}, {}, {}, #tickets > 0 and pairs_of('d') or {}
  for f, v in pairs(m) do meta[#meta + 1], meta[#meta + 2] = f, tostring(v) end
  for i, t in ipairs(tickets) do es[i] = entry(t, data[tostring(t)]) end
  for id, j in pairs(pairs_of('j')) do js[#js + 1] = {id, unpk(j)} end
  return {meta, es, js, call('LLEN', key('o')), now}
end
local function due_at() -- when the lane wants a look, or nil
  if n('turn') ~= 0 or s('non') ~= '' then return n('til') end
  if call('HLEN', key('j')) > 0 then return 0 end
  local first = waiting()[1]
  if not first then return nil end
  local e = entries[first]
  return e[OPEN] > 0 and e[OPEN] or e[AT]
end
local function save(wake)
  if #dirty > 0 then call('HSET', key('m'), unpack(dirty)) end
  local at = not SEAT and due_at()
  if at then call('ZADD', DUE, at, LANE) else call('ZREM', DUE, LANE) end
  for name, by in pairs(counts) do call('HINCRBY', P .. 'cnt', name, by) end
  -- With the call's name, by which a process knows its own. A lane's name has no line break.
  if wake then call('PUBLISH', P .. 'w', LANE .. '\n' .. CALL) end
end

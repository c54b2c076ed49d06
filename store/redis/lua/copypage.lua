#!lua
-- copypage: writes rows, marks and parts of a lane that is copied here. Each says where it stands, so a page may come twice.
-- KEYS, ARGV 1-4: prelude. ARGV: first (1: what is here is removed) gen from (rows before) after (parts before)
--   · rows as stored · marks {key, ms, "<ms> <ticket> <done>"} · parts
-- Reply: {OK}; STALE (the page before is not here)
local first, gen, from, after = num(), num(), num(), num()
local add, marks, parts = list(str), list(function() return {str(), num(), str()} end), outs()

if first == 1 then
  unlink_lane()
  -- The span in which this copy began and the one before hold all marks that count.
  local b = math.floor(now / SPAN)
  call('HSET', key('m'), 'gen', gen, 'ub', b, 'uc', b - 1)
  m.ub, m.uc = b, b - 1
elseif not exists then
  return {'STALE'}
end
local function extend(list, have, items)
  if #items == 0 then return true end
  if call('LLEN', list) < have then return false end
  if have == 0 then call('UNLINK', list) else call('LTRIM', list, 0, have - 1) end
  for _, v in ipairs(items) do call('RPUSH', list, v) end
  return true
end
for i, p in ipairs(parts) do parts[i] = pack(p) end
if not extend(key('r' .. gen), from, add) or not extend(key('o'), after, parts) then return {'STALE'} end
for _, k in ipairs(marks) do
  local b = math.max(n('uc'), math.min(n('ub'), math.floor(k[2] / SPAN)))
  call('HSET', key('u' .. b), k[1], k[3])
end
return {'OK'}

#!lua
-- copylane: writes the rest of a lane whose pages are here, and makes it known.
-- KEYS, ARGV 1-4: prelude. ARGV: · meta {field, value} · entries · fates · jobs · last reply, as a tree (none or one)
-- Reply: {OK}; STALE (its pages are not here)
local function tree() -- "n" number, "s" text, "l" list of trees
  local kind = str()
  if kind == 'l' then return list(tree) end
  return kind == 'n' and num() or str()
end
local meta = list(function() return {str(), str()} end)
local slot = list(function() return {num(), str(), {num(), num(), num(), num(), num(), str(), str(), num(), list(str)}} end)
local sets = list(function() return {num(), {str(), num(), num(), num(), num(), num(), list(str)}} end)
local js, memo = jobs(), list(tree)

if not exists then return {'STALE'} end
for _, f in ipairs(meta) do set(f[1], f[2]) end
for _, e in ipairs(slot) do
  call('HSET', key('p'), e[1], pack(e[3]))
  call('HSET', key('d'), e[1], e[2])
end
for _, f in ipairs(sets) do call('HSET', key('f'), f[1], pack(f[2])) end
put_jobs(js)
if memo[1] then call('SET', key('c'), pack(memo[1])) end
if s('os') ~= '' then call('ZADD', P .. 'obx', n('ow') > 0 and n('ow') or n('ot'), LANE) end
call('ZADD', P .. 'names', 0, LANE)
save()
return {'OK'}

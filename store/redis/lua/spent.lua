#!lua
-- spent: replaces what reserve took under op by what was used, once, in the meters whose window is still the same.
-- KEYS, ARGV 1-4: prelude. ARGV: op actual kept
-- Reply: {OK}
local op, actual, kept = str(), num(), num()

local opkey = P .. 'mo:' .. op
local raw = call('GET', opkey)
local o = raw and unpk(raw)
if not o or now >= o[1] or o[5] then return {'OK'} end -- o: ends, amount, {{name, window} …}, reply, settled
for _, c in ipairs(o[3]) do
  local name = P .. 'mt:' .. c[1]
  local v = call('HMGET', name, 'w', 'e', 'u')
  if v[1] and tonumber(v[1]) == c[2] and now < tonumber(v[2]) then
    call('HSET', name, 'u', math.max(0, tonumber(v[3]) + actual - o[2]))
  end
end
o[1], o[5] = math.min(o[1], now + kept), true
call('SET', opkey, pack(o), 'PX', o[1] - now + 60000) -- as in reserve: longer than its end, which decides
return {'OK'}

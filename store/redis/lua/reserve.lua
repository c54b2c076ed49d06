#!lua
-- reserve: takes an amount from all meters, or from none. Amount 0 only reads. A meter is mt:<name>, a hash of w window, e its
-- end, u used, x granted, g grants and a field m<mark> for each; mo:<op> is what was taken. Both go by themselves.
-- KEYS, ARGV 1-4: prelude. ARGV: op amount idle · meters {name limit period}
-- Reply: {OK, name of the first meter that refused ('' = taken), ms until its window ends, {used limit grants window …}}
local SPARE = 60000 -- ms. The end that is stored decides; a key that went first would forget what was used (F38)
local op, amount, idle = str(), num(), num()
local meters = list(function() return {str(), num(), num()} end)

local opkey = P .. 'mo:' .. op
local raw = amount > 0 and call('GET', opkey)
if raw then
  local o = unpk(raw)
  if now < o[1] then return {'OK', '', 0, o[4]} end
end
local have, refused, wait = {}, '', 0
for i, c in ipairs(meters) do
  local window = c[3] > 0 and now - now % c[3] or 0
  local ends = c[3] > 0 and window + c[3] or now + idle
  local v = call('HMGET', P .. 'mt:' .. c[1], 'w', 'e', 'u', 'x', 'g')
  local k = {window, ends, 0, 0, 0, true} -- window, ends, used, extra, grants, fresh
  if v[1] and tonumber(v[1]) == window and now < tonumber(v[2]) then
    k = {window, ends, tonumber(v[3]), tonumber(v[4]), tonumber(v[5]), false}
  end
  have[i] = k
  if amount > 0 and refused == '' and k[3] + amount > c[2] + k[4] then
    refused, wait = c[1], c[3] > 0 and ends - now or 0
  end
end
local states, on, last = {}, {}, now
local take = amount > 0 and refused == ''
for i, c in ipairs(meters) do
  local k = have[i]
  if take then
    local name = P .. 'mt:' .. c[1]
    if k[6] then call('UNLINK', name) end -- of an earlier window
    k[3] = k[3] + amount
    call('HSET', name, 'w', k[1], 'e', k[2], 'u', k[3], 'x', k[4], 'g', k[5])
    call('PEXPIRE', name, k[2] - now + SPARE)
    on[i], last = {c[1], k[1]}, math.max(last, k[2])
  end
  for _, v in ipairs({k[3], c[2] + k[4], k[5], k[1]}) do states[#states + 1] = v end
end
if take and last > now then call('SET', opkey, pack({last, amount, on, states}), 'PX', last - now + SPARE) end
return {'OK', refused, wait, states}

#!lua flags=allow-oom
-- outdone: ends the attempt that nonce holds; any other call changes nothing. Allowed when memory is full: it frees some.
-- KEYS, ARGV 1-4: prelude. ARGV: nonce id state (sent | dead | planned | unknown) wait
-- Reply: {OK}
local nonce, id, state, wait = str(), str(), str(), num()

local p = call('LINDEX', key('o'), 0)
if not p or unpk(p)[1] ~= id or s('os') ~= 'sending' or s('on') ~= nonce then return {'OK'} end
set('on', '')
if state == 'planned' or state == 'unknown' then
  if state == 'planned' then set('ot', now) else count('out_unknown') end
  head(state, n('ot'), wait > 0 and now + wait or 0)
else
  call('LPOP', key('o'))
  count('out_' .. state)
  set('oa', 0)
  head('planned', now, 0)
  if call('EXISTS', key('o')) == 0 then call('ZREM', P .. 'obx', LANE) end
end
save()
return {'OK'}

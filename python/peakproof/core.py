import json, tempfile, os
def plan(program, time_limit=0, state_limit=0, certificate_for=None):
    """temporary: greedy"""
    st=program["statements"]; n=len(st)
    sto=program["storages"]
    acc=[{a if isinstance(a,int) else a[0] for a in s["reads"]+s["writes"]} for s in st]
    def simulate(order):
        live={i for i,s in enumerate(sto) if s["live_in"]}
        left=[0]*len(sto)
        for a in acc:
            for x in a: left[x]+=1
        now=0
        for i in list(live):
            if left[i]==0 and not sto[i]["live_out"]: live.discard(i)
        now=sum(sto[i]["bytes"] for i in live)
        peak=now
        for v in order:
            for x in acc[v]:
                if x not in live: live.add(x); now+=sto[x]["bytes"]
            peak=max(peak,now+st[v].get("work",0))
            for x in acc[v]:
                left[x]-=1
                if left[x]==0 and not sto[x]["live_out"]: live.discard(x); now-=sto[x]["bytes"]
        return peak
    preds=[set() for _ in range(n)]
    def norm(a): return (a,None) if isinstance(a,int) else (a[0],(a[1],a[2]))
    hist={}
    for v,s in enumerate(st):
        for kind in ("reads","writes"):
            for a in s[kind]:
                x,r=norm(a)
                for (u,k2,r2) in hist.get(x,[]):
                    if u!=v and (kind=="writes" or k2=="writes") and (r is None or r2 is None or (r[0]<r2[1] and r2[0]<r[1])): preds[v].add(u)
        for kind in ("reads","writes"):
            for a in s[kind]:
                x,r=norm(a); hist.setdefault(x,[]).append((v,kind,r))
    for a,b in program.get("order",[]): preds[b].add(a)
    order=[];done=set()
    # greedy: reverse-ish depth first by net change
    left=[0]*len(sto)
    for a in acc:
        for x in a: left[x]+=1
    live={i for i,s in enumerate(sto) if s["live_in"]}
    while len(order)<n:
        best=None
        for v in range(n):
            if v in done or not preds[v]<=done: continue
            new=sum(sto[x]["bytes"] for x in acc[v] if x not in live)
            free=sum(sto[x]["bytes"] for x in acc[v] if left[x]==1 and not sto[x]["live_out"])
            key=(new-free,new,-v)
            if best is None or key<best[0]: best=(key,v)
        v=best[1]
        for x in acc[v]:
            live.add(x); left[x]-=1
            if left[x]==0 and not sto[x]["live_out"]: live.discard(x)
        order.append(v);done.add(v)
    before=simulate(range(n)); after=simulate(order)
    return dict(peak_before=before,peak_after=after,lower_bound=0,optimal=False,proof="none",floor=0,certificate=b"",order=order)

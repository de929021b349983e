var i=(n,t,...o)=>`admin/${[n,t,...o].map(encodeURIComponent).join("/")}`;export{i as a};

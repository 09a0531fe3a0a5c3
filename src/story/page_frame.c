/* Head, style and script of a page. */
#include "story/page_frame.h"
#include "base/sha256.h"
#include "story/html.h"

static const char style[] =
    ":root{color-scheme:light}body{font:15px/1.5 system-ui,'Liberation Sans',Arial,sans-serif;color:#222;background:#fff;"
    "max-width:1000px;margin:0 auto;padding:1.5rem 1rem 4rem}h1{font-size:1.6rem;margin:0 0 .2rem}"
    "h2{font-size:1.2rem;margin:2.2rem 0 .6rem;border-bottom:1px solid #ccc;padding-bottom:.2rem}h3{font-size:1rem;margin:1.2rem "
    "0 "
    ".4rem}.small{color:#555;font-size:.9rem;overflow-wrap:anywhere}.verdict{border-left:6px solid;padding:.6rem "
    "1rem;margin:1rem 0;"
    "font-size:1.05rem;background:#f6f6f6;overflow-wrap:anywhere}.done{border-color:#009e73}.failed,.killed{border-color:#d55e00}"
    ".stopped,.waiting{border-color:#e69f00}.running{border-color:#0072b2}table{border-collapse:collapse;margin:.4rem 0;"
    "display:block;overflow-x:auto;max-width:100%}th,td{text-align:left;padding:.15rem .8rem .15rem 0;border-bottom:1px solid "
    "#e5e5e5;vertical-align:top;overflow-wrap:anywhere;min-width:4em}th{font-weight:600;white-space:nowrap}"
    "td.n{text-align:right;white-space:"
    "nowrap;"
    "font-variant-numeric:tabular-nums}pre{background:#f6f6f6;padding:.7rem 1rem;overflow-x:auto;white-space:pre-wrap;"
    "overflow-wrap:anywhere;font:13px/1.45 ui-monospace,'Liberation Mono',monospace}code{font:13px ui-monospace,'Liberation "
    "Mono',monospace}.hash{font-size:11px;overflow-wrap:anywhere}svg{max-width:100%;height:auto;font-family:Helvetica,Arial,'"
    "Liberation Sans',sans-serif}.row{display:flex;flex-wrap:wrap;"
    "gap:1rem;align-items:flex-start}figure{margin:0;max-width:100%}figure img{max-width:100%;height:auto;display:block;"
    "image-rendering:pixelated;border:1px solid "
    "#ccc}figcaption{font-size:.85rem;color:#444;max-width:330px;overflow-wrap:anywhere}"
    ".legend span{margin-right:1.2rem}.legend i{display:inline-block;width:12px;height:12px;margin-right:.4rem;"
    "vertical-align:-1px}.simulated{background:#fff3d6;border:1px solid #e69f00;padding:.3rem .8rem}"
    "@media print{body{max-width:none;padding:0;font-size:11px}h2{break-after:avoid}figure,svg,tr{break-inside:avoid}"
    "pre,table{overflow:visible}table{display:table}a{color:inherit}}";

/* The wheel zooms into a drawing with Ctrl held, dragging moves it, two clicks show all of it again. */
static const char script[] =
    "for(const s of document.querySelectorAll('svg.zoom')){const a=s.getAttribute('viewBox').split(' ').map(Number);let v=[...a];"
    "const put=()=>s.setAttribute('viewBox',v.join(' '));s.addEventListener('wheel',e=>{if(!e.ctrlKey)return;e.preventDefault();"
    "const r=s.getBoundingClientRect(),f=e.deltaY>0?1.25:.8,w=Math.min(v[2]*f,a[2]),h=Math.min(v[3]*f,a[3]),x=(e.clientX-r.left)/"
    "r.width,y=(e.clientY-r.top)/r.height;v=[v[0]+(v[2]-w)*x,v[1]+(v[3]-h)*y,w,h];put()},{passive:false});let d=null;"
    "s.addEventListener('pointerdown',e=>{if(v[2]<a[2]){d=[e.clientX,e.clientY,v[0],v[1]];s.setPointerCapture(e.pointerId)}});"
    "s.addEventListener('pointermove',e=>{if(!d)return;const r=s.getBoundingClientRect();v[0]=d[2]-(e.clientX-d[0])*v[2]/r.width;"
    "v[1]=d[3]-(e.clientY-d[1])*v[3]/r.height;put()});s.addEventListener('pointerup',()=>d=null);"
    "s.addEventListener('dblclick',()=>{v=[...a];put()})}";

/* Only this script and this style: what a text of a page might smuggle in does not run. */
static void put_policy(fv_bytes *out) {
    const char *const parts[] = { script, style };
    fv__bytes_printf(out, "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:");
    for (int i = 0; i < 2; i++) {
        uint8_t   digest[32];
        fv_sha256 sha;
        fv__sha256_init(&sha);
        fv__sha256_add(&sha, parts[i], strlen(parts[i]));
        fv__sha256_finish(&sha, digest);
        fv__bytes_printf(out, "; %s 'sha256-", i ? "style-src" : "script-src");
        fv__html_base64(out, digest, sizeof digest);
        fv__bytes_printf(out, "'");
    }
    fv__bytes_printf(out, "; style-src-attr 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n");
}

void fv__page_begin(fv_bytes *out, const char *title) {
    fv__bytes_printf(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    put_policy(out);
    fv__bytes_printf(out, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>");
    fv__html_text(out, title);
    fv__bytes_printf(out, "</title>\n<style>%s</style>\n</head>\n<body>\n", style);
}

void fv__page_end(fv_bytes *out) { fv__bytes_printf(out, "<script>%s</script>\n</body>\n</html>\n", script); }

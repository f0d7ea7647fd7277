(file) => {
  const link = document.createElement("a");
  Object.assign(link, { href: file.url, download: file.orig_name ?? "" });
  link.click();
}

// The same volume drawn by vtk.js, for bench/view_page.py: window.measure(mode, scale) gives milliseconds of a picture.
import "@kitware/vtk.js/Rendering/Profiles/Volume";
import vtkColorTransferFunction from "@kitware/vtk.js/Rendering/Core/ColorTransferFunction";
import vtkDataArray from "@kitware/vtk.js/Common/Core/DataArray";
import vtkGenericRenderWindow from "@kitware/vtk.js/Rendering/Misc/GenericRenderWindow";
import vtkImageData from "@kitware/vtk.js/Common/DataModel/ImageData";
import vtkPiecewiseFunction from "@kitware/vtk.js/Common/DataModel/PiecewiseFunction";
import vtkVolume from "@kitware/vtk.js/Rendering/Core/Volume";
import vtkVolumeMapper from "@kitware/vtk.js/Rendering/Core/VolumeMapper";

const MODES = { composite: 0, maximum: 1 };

function makeImage(bytes, side) {
    const image = vtkImageData.newInstance();
    image.setDimensions(side, side, side);
    image.getPointData().setScalars(vtkDataArray.newInstance({ values: bytes, numberOfComponents: 1 }));
    return image;
}

window.prepare = (text, side) => {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)),
        box = document.querySelector("#box"),
        mapper = vtkVolumeMapper.newInstance(),
        volume = vtkVolume.newInstance(),
        colour = vtkColorTransferFunction.newInstance(),
        opacity = vtkPiecewiseFunction.newInstance(),
        view = vtkGenericRenderWindow.newInstance();
    colour.addRGBPoint(0, 0, 0, 0);
    colour.addRGBPoint(255, 1, 1, 1);
    opacity.addPoint(0, 0);
    opacity.addPoint(255, 0.3);
    mapper.setInputData(makeImage(bytes, side));
    mapper.setAutoAdjustSampleDistances(false);
    mapper.setSampleDistance(1);
    volume.setMapper(mapper);
    volume.getProperty().setRGBTransferFunction(0, colour);
    volume.getProperty().setScalarOpacity(0, opacity);
    volume.getProperty().setInterpolationTypeToLinear();
    view.setContainer(box);
    view.getRenderer().addVolume(volume);
    view.getRenderer().resetCamera();
    const draw = () => {
        view.getRenderWindow().render();
        const gl = view.getApiSpecificRenderWindow().get3DContext();
        gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4)); // waits until it is drawn
    };
    window.measure = (mode, scale) => {
        mapper.setBlendMode(MODES[mode]);
        view.getApiSpecificRenderWindow().setSize(Math.round(box.clientWidth * scale), Math.round(box.clientHeight * scale));
        draw();
        const start = performance.now();
        let pictures = 0;
        while (pictures < 3 || performance.now() - start < 3000) {
            view.getRenderer().getActiveCamera().azimuth(3);
            draw();
            pictures++;
        }
        return (performance.now() - start) / pictures;
    };
};
